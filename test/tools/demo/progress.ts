/** Shows the progress of a run: one line that is rewritten on a terminal, a line per quarter elsewhere. */
export function createProgress(label: string): (done: number, total: number) => void {
  return process.stdout.isTTY ? rewriting(label) : quarterly(label);
}

function rewriting(label: string) {
  return (done: number, total: number) => {
    process.stdout.write(
      `\r${label}: ${done} of ${total} deliveries acknowledged${done === total ? "\n" : ""}`,
    );
  };
}

function quarterly(label: string) {
  let quarters = 0;
  return (done: number, total: number) => {
    const reached = Math.floor((done * 4) / total);
    if (reached === quarters) return;
    quarters = reached;
    console.log(`${label}: ${done} of ${total} deliveries acknowledged`);
  };
}
