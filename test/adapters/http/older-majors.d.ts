/** Older majors are installed under other names; the tests use only the API that both have. */
declare module "express4" {
  export { default } from "express";
}
