import { createOnceward, type Onceward, type OncewardError } from "@onceward/client/web";

interface Environment {
  readonly ADDRESS: string;
  readonly API_KEY: string;
  readonly TOKEN_URL: string;
}

/** One client of each kind for all requests of the isolate, as the documentation of `./web` says. */
const clients = new Map<string, Onceward>();

function clientOf(kind: string, { ADDRESS: address, API_KEY: apiKey, TOKEN_URL }: Environment): Onceward {
  switch (kind) {
    case "token":
      return createOnceward({ address, token: async () => await (await fetch(TOKEN_URL)).text() });
    case "unreachable":
      return createOnceward({ address: "http://127.0.0.1:1", apiKey, timeoutMs: 500 });
    default:
      return createOnceward({ address, apiKey });
  }
}

/** Runs the operation of `?key=` with the client of the kind `?client=`. */
export default {
  async fetch(request: Request, environment: Environment) {
    const { searchParams } = new URL(request.url);
    const kind = searchParams.get("client") ?? "";
    const onceward = clients.get(kind) ?? clientOf(kind, environment);
    clients.set(kind, onceward);
    const operation = { namespace: "charges", key: searchParams.get("key") ?? "" };
    try {
      const { value, replayed } = await onceward.runDetailed(operation, async () => {
        // I/O of this request while others wait for its outcome.
        await fetch(environment.TOKEN_URL);
        return crypto.randomUUID();
      });
      return Response.json({ value, replayed });
    } catch (error) {
      return Response.json({ reason: (error as OncewardError).reason });
    }
  },
};
