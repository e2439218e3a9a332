/** A message of a Kafka partition. */
export interface PartitionMessage {
  readonly topic: string;
  readonly partition: number;
}

/**
 * Handles the messages of each partition one after the other, and the partitions beside each other. Keeps at most
 * `maxMessages` that are not handled yet.
 */
export class Partitions<Message extends PartitionMessage> {
  readonly #maxMessages: number;
  readonly #handle: (message: Message) => Promise<void>;
  readonly #queues = new Map<string, Message[]>();
  readonly #running = new Set<Promise<void>>();
  #size = 0;
  #waiting: (() => void)[] = [];

  /** @param handle handles one message; must not reject. */
  constructor(maxMessages: number, handle: (message: Message) => Promise<void>) {
    this.#maxMessages = maxMessages;
    this.#handle = handle;
  }

  /** Adds a message after those of its partition. Resolves once there is room for another message. */
  async add(message: Message): Promise<void> {
    const name = `${message.partition}/${message.topic}`;
    const queue = this.#queues.get(name);
    this.#size++;
    if (queue === undefined) this.#start(name, [message]);
    else queue.push(message);
    while (this.#size >= this.#maxMessages) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Drops the messages that wait after others, and resolves once those being handled are handled. */
  async end(): Promise<void> {
    for (const queue of this.#queues.values()) this.#size -= queue.splice(1).length;
    this.#wakeWaiting();
    await Promise.all(this.#running);
  }

  #start(name: string, queue: Message[]): void {
    this.#queues.set(name, queue);
    const running = this.#handleAll(name, queue).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #handleAll(name: string, queue: Message[]): Promise<void> {
    for (let message = queue[0]; message !== undefined; message = queue[0]) {
      await this.#handle(message);
      queue.shift();
      this.#size--;
      this.#wakeWaiting();
    }
    this.#queues.delete(name);
  }

  #wakeWaiting(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
