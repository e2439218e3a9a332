"""The guides' snippets in Python do what their pages say. They are in the guides of the repository."""

import hashlib
import os
import re
import signal
import textwrap
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onceward import FingerprintMismatchError, InProgressError, OncewardError
from onceward.testing import TestingOnceward, TestingPolicy
from onceward.v1.idempotency_pb2 import ClaimRequest

_GUIDES = Path(__file__).parents[2] / "typescript" / "guides"


def _snippets(page: Path, language: str) -> list[str]:
    return [
        textwrap.dedent(text)
        for text in re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    ]


class Page:
    """The snippets of a page, and what they speak of."""

    def __init__(self, testing: TestingOnceward) -> None:
        self.testing = testing
        self.effects = 0
        self.order = {"id": "order-1", "amount": 4200}

    def happen(self, *_: Any, **__: Any) -> dict[str, int]:
        self.effects += 1
        return {"effect": self.effects}

    def run(self, name: str, **names: Any) -> dict[str, Any]:
        """Runs the page's snippets as one program. Returns its names."""
        given = {
            "onceward": self.testing.onceward,
            "order": self.order,
            "provider": SimpleNamespace(charge=self.happen),
            **names,
        }
        exec("\n".join(_snippets(_GUIDES / f"{name}.md", "python")), given)
        return given


@pytest.fixture
def page() -> Iterator[Page]:
    namespaces = {
        "payouts": TestingPolicy(on_lease_expiry="HOLD"),
        "invoices": TestingPolicy(late_keys="REQUIRE_TIME"),
    }
    with TestingOnceward(namespaces=namespaces) as testing:
        yield Page(testing)


def test_each_snippet_of_the_guides_has_one_in_python() -> None:
    pages = {path.name: path for path in _GUIDES.glob("*.md")}
    counts = {
        language: {name: len(_snippets(path, language)) for name, path in pages.items()}
        for language in ("ts", "python")
    }
    assert sum(counts["ts"].values()) > 0
    assert counts["python"] == counts["ts"]


def test_keys(page: Page) -> None:
    page.run("keys", refund=page.happen, send_report=page.happen)
    assert page.effects == 2
    assert [record.key for record in page.testing.records()] == ["order:order-1:refund:2", "daily:2026-03-01"]


def test_fingerprints(page: Page) -> None:
    names = page.run("fingerprints")
    assert page.effects == 1
    assert names["first"] == names["second"]


def test_crashes(page: Page) -> None:
    paid: set[str] = set()

    def pay_out(payout: str, idempotency_key: str) -> str:
        paid.add(payout)
        page.happen()
        return payout

    bank = SimpleNamespace(
        debit=page.happen,
        credit=page.happen,
        find_payout=lambda payout: payout if payout in paid else None,
        pay_out=pay_out,
    )
    # A holder that paid, and died before its completion.
    page.testing._records.claim(ClaimRequest(namespace="payouts", key="payout-7", claim_id="dead"))
    pay_out("payout-7", idempotency_key="the dead holder's")
    page.testing.advance(60_000)
    payout = {"id": "payout-7", "created_at": datetime.now(timezone.utc)}
    names = page.run("crashes", bank=bank, transfer={"id": "transfer-1"}, payout=payout)
    assert page.effects == 3
    assert names["pay"](payout) == "payout-7"


def test_cron(page: Page) -> None:
    settled: list[str] = []
    is_down = False

    def report(day: str, message_id: str) -> str:
        if is_down:
            raise ConnectionError(day)
        page.happen()
        return day

    close_day = page.run("cron", ledger=SimpleNamespace(settle=settled.append, report=report))["close_day"]
    close_day("2026-03-01")
    assert (settled, page.effects) == (["2026-03-01"], 1)
    # A machine that dies after its checkpoint.
    is_down = True
    page.testing.fail_next("Release", "INTERNAL")
    with pytest.raises(ConnectionError):
        close_day("2026-03-02")
    with pytest.raises(InProgressError):
        close_day("2026-03-02")
    is_down = False
    page.testing.advance(60_000)
    close_day("2026-03-02")
    assert (settled, page.effects) == (["2026-03-01", "2026-03-02"], 2)


def test_emails(page: Page) -> None:
    sent: list[str] = []

    def send(to: str, template: str, data: object, message_id: str) -> str:
        sent.append(to)
        return message_id

    send_receipt = page.run(
        "emails",
        mailer=SimpleNamespace(send=send),
        hash_of=lambda text: hashlib.sha256(text.encode()).hexdigest(),
    )["send_receipt"]
    assert sent == ["ada@example.com"]
    assert len(send_receipt("bob@example.com")) == 43
    assert sent == ["ada@example.com", "bob@example.com"]


def test_from_a_table(page: Page) -> None:
    if "ONCEWARD_TEST_DATABASE" not in os.environ:
        pytest.skip("ONCEWARD_TEST_DATABASE names no Postgres")
    import psycopg

    from onceward.inbox import MIGRATION

    with psycopg.connect(os.environ["ONCEWARD_TEST_DATABASE"]) as connection:
        connection.execute(MIGRATION)
        connection.commit()
        names = page.run(
            "from-a-table",
            connection=connection,
            event={"id": f"event-{os.urandom(8).hex()}", "data": {"amount": 4200}},
            insert_invoice=lambda connection, event: event["id"],
            mailer=SimpleNamespace(send=page.happen),
            find_processed=lambda connection, id: None,
        )
    assert not names["result"].replayed
    assert (names["receipt"], names["value"], page.effects) == ({"effect": 1}, {"effect": 2}, 2)


def test_from_powertools(page: Page) -> None:
    handler = page.run("from-powertools")["handler"]
    event = {"orderId": "1", "amount": 1}
    assert handler(event, object()) == handler(event, object())
    assert page.effects == 1
    with pytest.raises(FingerprintMismatchError):
        handler({**event, "amount": 2}, object())


def test_from_redis(page: Page) -> None:
    locks: set[str] = set()

    def set_unless_set(key: str, value: str, nx: bool, ex: int) -> bool | None:
        if key in locks:
            return None
        locks.add(key)
        return True

    names = page.run("from-redis", redis=SimpleNamespace(set=set_unless_set))
    assert page.effects == 1
    locks.add("charged:order-1")
    with pytest.raises(RuntimeError, match="an old process"):
        names["charge_unless_locked"](None)


def test_from_stripe(page: Page) -> None:
    def create(idempotency_key: str, **order: Any) -> Any:
        return SimpleNamespace(id=f"ch_{page.happen()['effect']}")

    stripe = SimpleNamespace(Charge=SimpleNamespace(create=create))
    names = page.run("from-stripe", stripe=stripe, mailer=SimpleNamespace(send=page.happen))
    assert (names["charge"], page.effects) == ({"id": "ch_1"}, 2)


def test_imports(page: Page) -> None:
    rows = [{"file": "f1", "line": line, "cents": line} for line in range(250)]
    credited: list[int] = []
    failed: list[BaseException] = []
    is_down = True

    def credit(row: dict[str, Any]) -> None:
        if row["line"] == 120 and is_down:
            raise ConnectionError
        credited.append(row["line"])

    names = page.run("imports", accounts=SimpleNamespace(credit=credit), rows=rows, failed=failed)
    assert (len(credited), len(failed)) == (249, 2)
    is_down = False
    names["import_file"](rows)
    assert (len(credited), len(failed)) == (250, 2)
    names["import_file"]([{"file": "f1", "line": 0, "cents": 99}])
    assert isinstance(failed[2], FingerprintMismatchError)


def test_kubernetes(page: Page) -> None:
    closed: list[str] = []
    handler = signal.getsignal(signal.SIGTERM)
    try:
        server = SimpleNamespace(close=lambda: closed.append("server"))
        names = page.run("kubernetes", server=server, pages=[1, 2], export_page=page.happen)
        assert page.effects == 2
        signal.raise_signal(signal.SIGTERM)
        while not page.testing.onceward._calls.is_closing:
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert closed == ["server"]
    with pytest.raises(OncewardError) as refused:
        names["onceward"].run("exports", "export-4", page.happen)
    assert refused.value.reason == "CLOSED"


def test_late_retries(page: Page) -> None:
    reviews: list[Any] = []
    retry = page.run("late-retries", reviews=reviews)["retry"]
    invoice = {**page.order, "created_at": datetime.now(timezone.utc)}
    retry(invoice)
    retry(invoice)
    assert (page.effects, reviews) == (1, [])
    # The record ends ten minutes after the retention.
    page.testing.advance(72 * 3_600_000 + 600_000)
    retry(invoice)
    assert page.effects == 1
    [(reviewed, metadata)] = reviews
    assert reviewed == invoice and sorted(metadata) == ["accepted_until", "key_created_at"]


def test_outages(page: Page) -> None:
    page.testing.fail_next("Claim", "DATABASE_UNAVAILABLE")
    names = page.run("outages", index=page.happen)
    assert (page.effects, names["unguarded"]) == (3, 0)
    with pytest.warns(RuntimeWarning, match="without a claim"):
        page.testing.fail_next("Claim", "DATABASE_UNAVAILABLE", times=100)
        result = names["onceward"].run_detailed(
            "search-index", "order-3", page.happen, timeout_ms=1, on_unavailable="proceed"
        )
    assert not result.guarded


def test_queues(page: Page) -> None:
    acknowledged: list[str] = []
    handle = page.run("queues")["handle"]
    message = SimpleNamespace(order_id="order-1", body=page.order, ack=lambda: acknowledged.append("order-1"))
    handle(message)
    handle(message)
    assert (page.effects, len(acknowledged)) == (1, 2)
