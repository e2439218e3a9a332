import { type Deadline, isOver } from "../../domain/deadline.ts";
import { Rejected, type Settled } from "../../domain/settled.ts";

/** What was submitted together. */
export class Submission<Row> {
  readonly deadline: Deadline;
  readonly #resolve: (settled: readonly Settled<Row>[]) => void;
  readonly #keep: ((row: Row) => Row) | undefined;
  readonly #settled: Settled<Row>[];
  #left: number;

  /**
   * @param resolve is called when all `size` operations have settled.
   * @param keep makes what is kept of each row until then.
   */
  constructor(
    size: number,
    deadline: Deadline,
    resolve: (settled: readonly Settled<Row>[]) => void,
    keep?: (row: Row) => Row,
  ) {
    this.deadline = deadline;
    this.#resolve = resolve;
    this.#keep = keep;
    this.#settled = new Array(size);
    this.#left = size;
  }

  end(place: number, settled: Settled<Row>): void {
    this.#settled[place] =
      this.#keep === undefined || settled instanceof Rejected ? settled : this.#keep(settled);
    this.#left--;
    if (this.#left === 0) this.#resolve(this.#settled);
  }
}

/** An operation in the queue, or in a statement. */
export class Waiting<Op, Row> {
  readonly op: Op;
  readonly name: string;
  readonly #submission: Submission<Row>;
  readonly #place: number;
  #hasEnded = false;
  /** Others of its name that share its outcome. */
  readonly followers: Waiting<Op, Row>[] = [];

  constructor(op: Op, name: string, submission: Submission<Row>, place: number) {
    this.op = op;
    this.name = name;
    this.#submission = submission;
    this.#place = place;
  }

  get isOver(): boolean {
    return isOver(this.#submission.deadline);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  end(settled: Settled<Row>): void {
    this.#hasEnded = true;
    this.#submission.end(this.#place, settled);
  }
}
