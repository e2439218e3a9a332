import { type Deadline, isOver } from "../../domain/deadline.ts";
import { type Ended, Failed } from "../../domain/ended.ts";

/** What was submitted together. */
export class Submission<Row> {
  readonly deadline: Deadline;
  readonly #resolve: (ended: readonly Ended<Row>[]) => void;
  readonly #keep: ((row: Row) => Row) | undefined;
  readonly #ended: Ended<Row>[];
  #left: number;

  /**
   * @param resolve is called when all `size` operations have ended.
   * @param keep makes what is kept of each row until then.
   */
  constructor(
    size: number,
    deadline: Deadline,
    resolve: (ended: readonly Ended<Row>[]) => void,
    keep?: (row: Row) => Row,
  ) {
    this.deadline = deadline;
    this.#resolve = resolve;
    this.#keep = keep;
    this.#ended = new Array(size);
    this.#left = size;
  }

  end(place: number, ended: Ended<Row>): void {
    this.#ended[place] = this.#keep === undefined || ended instanceof Failed ? ended : this.#keep(ended);
    this.#left--;
    if (this.#left === 0) this.#resolve(this.#ended);
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

  end(ended: Ended<Row>): void {
    this.#hasEnded = true;
    this.#submission.end(this.#place, ended);
  }
}
