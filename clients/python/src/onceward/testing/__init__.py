"""An Onceward in memory for unit tests.

The real clients, over an implementation of the service that needs no database and no sleeping::

    from onceward.testing import TestingOnceward

    def test_an_order_that_is_delivered_twice_is_charged_once():
        with TestingOnceward() as testing:
            assert charge(testing.onceward, order) == charge(testing.onceward, order)
            assert testing.counts.granted == 1

    def test_after_a_crash_the_bank_gets_the_same_key_again():
        with TestingOnceward() as testing:
            testing.fail_next("Complete", "INTERNAL")
            with pytest.raises(CompletionError):
                charge(testing.onceward, order)
            testing.advance(30_000)
            charge(testing.onceward, order)

The service listens on a port of the loopback interface, so that other processes of the test, such as a
worker, are clients of it by ``testing.address``.
"""

from ._policy import TestingPolicy
from ._records import ClaimCounts
from ._service import CallName, TestingOnceward

__all__ = ["CallName", "ClaimCounts", "TestingOnceward", "TestingPolicy"]
