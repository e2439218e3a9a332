/** Who calls, as an option says. @throws TypeError if it says nothing: the keys of all such callers would be one's. */
export function callerOf<Native>(caller: (native: Native) => string, native: Native): string {
  const id = caller(native);
  if (typeof id === "string" && id !== "") return id;
  throw new TypeError("caller() must return a text that is not empty");
}
