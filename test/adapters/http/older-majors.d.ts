/** Older majors are installed under other names; the tests use only what both have. */
declare module "express4" {
  export { default } from "express";
}
