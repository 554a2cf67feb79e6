"""The circuit breaker of a share-partition."""

from penstock.broker.share.circuit_breaker import CircuitBreaker, DeliveryRules

RULES = DeliveryRules(failures=3, pause_ms=100)
ANY = None


def opened() -> CircuitBreaker:
    breaker = CircuitBreaker()
    breaker.failed(2, RULES, 0)
    assert breaker.most(RULES, 0) is ANY
    breaker.failed(1, RULES, 0)
    assert breaker.most(RULES, 99) == 0
    return breaker


def test_after_the_pause_one_record_is_delivered_as_a_trial() -> None:
    breaker = opened()
    assert breaker.most(RULES, 100) == 1
    breaker.tries(0)
    assert breaker.most(RULES, 500) == 0
    breaker.succeeded()
    assert breaker.most(RULES, 500) is ANY
    assert breaker.failed_in_a_row == 0


def test_a_failed_trial_restarts_the_pause() -> None:
    breaker = opened()
    breaker.tries(0)
    breaker.failed(1, RULES, 150)
    assert breaker.most(RULES, 249) == 0
    assert breaker.most(RULES, 250) == 1


def test_records_delivered_before_it_opened_do_not_lengthen_the_pause() -> None:
    breaker = opened()
    breaker.failed(5, RULES, 90)
    assert breaker.most(RULES, 100) == 1


def test_a_trial_whose_connection_is_lost_is_repeated() -> None:
    breaker = opened()
    breaker.tries(0)
    breaker.given_back()
    assert breaker.most(RULES, 100) == 1


def test_one_success_closes_it() -> None:
    breaker = opened()
    breaker.succeeded()
    assert breaker.most(RULES, 0) is ANY


def test_without_the_setting_it_never_opens() -> None:
    breaker = CircuitBreaker()
    breaker.failed(10**6, DeliveryRules(), 0)
    assert breaker.most(RULES, 0) is ANY
