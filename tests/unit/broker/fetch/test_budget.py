"""How much a fetch response carries, and when it is worth sending."""

from penstock.broker.fetch.budget import FetchBudget


def test_partitions_share_the_bytes_of_a_response_in_order() -> None:
    budget = FetchBudget(max_bytes=100, min_bytes=1, max_slices=10)
    assert budget.room(60) == 60
    budget.take(60)
    assert budget.room(60) == 40


def test_a_batch_larger_than_every_limit_leaves_no_room() -> None:
    budget = FetchBudget(max_bytes=100, min_bytes=1, max_slices=10)
    assert budget.is_empty
    budget.take(500)
    assert (budget.room(60), budget.size_bytes, budget.is_empty) == (0, 500, False)


def test_a_response_waits_for_its_minimum_which_is_capped_by_its_maximum() -> None:
    budget = FetchBudget(max_bytes=100, min_bytes=1_000, max_slices=10)
    budget.take(99)
    assert not budget.is_enough
    budget.take(1)
    assert budget.is_enough


def test_a_minimum_of_zero_bytes_is_always_reached() -> None:
    assert FetchBudget(max_bytes=100, min_bytes=0, max_slices=10).is_enough


def test_a_response_does_not_wait_for_bytes_that_would_not_fit() -> None:
    budget = FetchBudget(max_bytes=100, min_bytes=100, max_slices=10)
    budget.take(60)
    budget.leave_out(budget.room(30))
    assert not budget.is_enough  # of the 100 bytes, 90 at most are accounted for
    budget.leave_out(budget.room(1_000))
    assert budget.is_enough


def test_a_response_that_reached_the_limit_of_open_files_is_sent() -> None:
    budget = FetchBudget(max_bytes=100, min_bytes=100, max_slices=2)
    budget.take(1)
    assert (budget.has_slices_left, budget.is_enough) == (True, False)
    budget.take(1)
    assert (budget.has_slices_left, budget.is_enough) == (False, False)
    budget.leave_out_slice()
    assert (budget.has_slices_left, budget.is_enough) == (False, True)


def test_a_partition_that_is_read_again_returns_its_share() -> None:
    budget = FetchBudget(max_bytes=100, min_bytes=50, max_slices=1)
    budget.take(60)
    budget.give_back(60)
    assert budget.has_slices_left
    assert (budget.size_bytes, budget.room(1_000), budget.is_enough) == (0, 100, False)


def test_a_cleared_budget_is_like_a_new_one() -> None:
    budget = FetchBudget(max_bytes=100, min_bytes=50, max_slices=1)
    budget.take(10)
    budget.leave_out_slice()
    budget.clear()
    assert budget.has_slices_left
    assert (budget.is_empty, budget.is_enough, budget.room(1_000)) == (True, False, 100)
