import { rm, writeFile } from "node:fs/promises";
import { messageOf, UsageError } from "./failure.ts";
import type { Output } from "./output.ts";

/**
 * Creates a key, and prints the reply. With a file, its secret goes there, readable by the owner only, and is not printed. The
 * file is made first, so that no key is created whose secret can't be kept.
 *
 * @throws UsageError if the file exists or can't be written; the errors of `create`, after which there is no file.
 */
export async function createWithSecret<Reply extends { readonly secret: string }>(
  out: string | undefined,
  output: Output,
  create: () => Promise<Reply>,
  print: (reply: Reply) => void,
): Promise<void> {
  if (out === undefined) return print(await create());
  await writeFile(out, "", { flag: "wx", mode: 0o600 }).catch((error) => {
    throw new UsageError(`--out: ${messageOf(error)}.`);
  });
  let reply: Reply;
  try {
    reply = await create();
  } catch (error) {
    await rm(out, { force: true });
    throw error;
  }
  await writeFile(out, `${reply.secret}\n`);
  output.remark(`The secret is in ${out}.\n`);
  if (output.isJson) print({ ...reply, secret: "" });
}
