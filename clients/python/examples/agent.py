"""An agent whose process dies after a refund, before its framework stored the tool's answer.

The process is started again and repeats the step, as the model does, and the bank's ledger has one refund.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from onceward import Onceward, current_claim, new_key
from onceward.agents import AgentRun, once_tool


def run_agent(run_id: str, ledger: Path, starts: int) -> None:
    address = os.environ.get("ONCEWARD_ADDRESS", "http://127.0.0.1:50051")
    with Onceward(address, api_key=os.environ["ONCEWARD_API_KEY"]) as onceward:
        run = AgentRun(onceward, "agent-tools", run_id)

        @once_tool(run, context="step", step=lambda step: step)
        def refund(step: int, order: str, cents: int) -> str:
            with ledger.open("a") as file:
                file.write(f"{order} {cents} {current_claim().derive_key('bank')}\n")
            return f"refunded order {order}"

        # As the framework calls it, with what the model asks for in its first step.
        answer = refund(1, order="7", cents=4200)
        if starts == 1:
            os._exit(1)
        print(f"the model reads: {answer}", flush=True)


if len(sys.argv) > 1:
    run_agent(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
else:
    run_id = new_key()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder, "ledger.txt")
        for starts in (1, 2):
            child = subprocess.run([sys.executable, __file__, run_id, ledger, str(starts)], check=False)
        refunds = len(ledger.read_text().splitlines())
    print(f"{starts} starts of the process, {refunds} refund")
    assert (child.returncode, refunds) == (0, 1)
