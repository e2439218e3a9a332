import { PubSub, protos, type Subscription } from "@google-cloud/pubsub";
import { Server, ServerCredentials, type ServerDuplexStream, type ServiceDefinition } from "@grpc/grpc-js";

const { google } = protos;
const v1 = google.pubsub.v1;
type Pull = ServerDuplexStream<unknown, protos.google.pubsub.v1.IStreamingPullResponse>;

interface Codec {
  encode(message: never): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

interface Published {
  readonly attributes: Record<string, string>;
  readonly orderingKey: string;
  readonly publishTime: { readonly seconds: number };
}

/** Describes a method of the service Subscriber. */
function method(name: string, request: Codec, response: Codec, streams: boolean) {
  const serialize = (codec: Codec) => (message: unknown) =>
    Buffer.from(codec.encode(message as never).finish());
  return {
    path: `/google.pubsub.v1.Subscriber/${name}`,
    requestStream: streams,
    responseStream: streams,
    requestSerialize: serialize(request),
    requestDeserialize: (bytes: Buffer) => request.decode(bytes),
    responseSerialize: serialize(response),
    responseDeserialize: (bytes: Buffer) => response.decode(bytes),
  };
}

const SUBSCRIBER: ServiceDefinition = {
  streamingPull: method("StreamingPull", v1.StreamingPullRequest, v1.StreamingPullResponse, true),
  acknowledge: method("Acknowledge", v1.AcknowledgeRequest, google.protobuf.Empty, false),
  modifyAckDeadline: method("ModifyAckDeadline", v1.ModifyAckDeadlineRequest, google.protobuf.Empty, false),
};

/**
 * Answers the three RPCs that a subscriber of Google Pub/Sub uses, over gRPC: a subscription that delivers a message again
 * once its deadline is set to 0. It is not an emulator: deadlines don't pass automatically.
 */
export class PubSubEndpoint {
  /** Ids of the acknowledged messages. */
  readonly acked: string[] = [];
  /** Ids of the messages that were returned. */
  readonly nacked: string[] = [];
  readonly #server = new Server();
  readonly #messages = new Map<string, Published>();
  #pull: Pull | undefined;
  #client: PubSub | undefined;

  async start(): Promise<Subscription> {
    type Reply = (error: null, message: object) => void;
    this.#server.addService(SUBSCRIBER, {
      streamingPull: (call: Pull) => {
        this.#pull = call;
        call.on("data", () => {});
        call.on("end", () => call.end());
        for (const id of this.#messages.keys()) this.#deliver(id);
      },
      acknowledge: ({ request }: { request: { ackIds: string[] } }, reply: Reply) => {
        for (const id of request.ackIds) this.#messages.delete(id);
        this.acked.push(...request.ackIds);
        reply(null, {});
      },
      modifyAckDeadline: (
        { request }: { request: { ackIds: string[]; ackDeadlineSeconds: number } },
        reply: Reply,
      ) => {
        reply(null, {});
        if (request.ackDeadlineSeconds > 0) return;
        this.nacked.push(...request.ackIds);
        for (const id of request.ackIds) this.#deliver(id);
      },
    });
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    this.#client = new PubSub({ projectId: "test", apiEndpoint: `127.0.0.1:${port}`, emulatorMode: true });
    return this.#client.subscription("charges", { streamingOptions: { maxStreams: 1 } });
  }

  /** Publishes a message. */
  publish(id: string, attributes: Record<string, string>, orderingKey = "", publishedMs = Date.now()): void {
    const publishTime = { seconds: Math.floor(publishedMs / 1000) };
    this.#messages.set(id, { attributes, orderingKey, publishTime });
    this.#deliver(id);
  }

  async stop(): Promise<void> {
    await this.#client?.close();
    this.#server.forceShutdown();
  }

  #deliver(id: string): void {
    const published = this.#messages.get(id);
    if (published === undefined) return;
    const message = { messageId: id, ...published, data: Buffer.from("{}") };
    this.#pull?.write({ receivedMessages: [{ ackId: id, message }] });
  }
}
