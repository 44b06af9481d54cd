"""The order positions come in: every one once an epoch, found at any place at once, well mixed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadRequest
from keima.training.data.sampling import key_of, mix, permute, random_numbers, stream


@given(st.integers(1, 3000), st.integers(-5, 2**64))
@settings(max_examples=60, deadline=None)
def test_an_epoch_visits_every_position_once(count, seed):
    for epoch in range(2):
        assert sorted(stream(epoch * count, count, count, seed)) == list(range(count))


@given(st.integers(1, 200), st.integers(0, 500), st.integers(1, 100), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_a_stretch_of_the_stream_does_not_depend_on_where_it_is_cut(count, first, size, seed):
    whole = stream(0, first + size, count, seed)
    assert np.array_equal(stream(first, size, count, seed), whole[first:])


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = [stream(epoch * 1000, 1000, 1000, seed) for seed in (0, 1) for epoch in (0, 1)]
    for i, order in enumerate(orders):
        assert not np.array_equal(order, np.arange(1000))
        for other in orders[:i]:
            assert (order == other).mean() < 0.01


def test_huge_ranges_need_no_memory_and_repeat_nothing():
    found = stream(123_456_789_012, 10_000, 10**15, 3)
    assert len(set(found.tolist())) == 10_000
    assert found.min() >= 0
    assert found.max() < 10**15


@pytest.mark.parametrize("count", [5, 8, 60])
def test_every_thing_is_as_likely_at_every_place(count):
    """Chi-squared of where things land over many keys: near its mean, the degrees of freedom."""
    runs = 4000
    places = np.arange(count)
    table = np.zeros((count, count))
    for seed in range(runs):
        found = np.empty(count, np.int64)
        permute(places, count, key_of(seed), found)
        table[places, found] += 1
    expected = runs / count
    freedom = (count - 1) ** 2
    chi = ((table - expected) ** 2 / expected).sum()
    assert abs(chi - freedom) < 5 * np.sqrt(2 * freedom)


def test_neighbours_in_the_order_are_far_apart():
    order = stream(0, 100_000, 100_000, 1)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.01
    assert (np.abs(np.diff(order)) < 100).mean() < 0.004


def test_random_numbers_are_the_same_from_any_start_and_differ_by_purpose():
    whole = random_numbers(7, 1, 0, 1000)
    assert np.array_equal(random_numbers(7, 1, 900, 100), whole[900:])
    assert not np.intersect1d(whole, random_numbers(7, 2, 0, 1000)).size
    assert not np.intersect1d(whole, random_numbers(8, 1, 0, 1000)).size
    eighths = np.bincount((whole >> np.uint64(61)).astype(int), minlength=8)
    assert eighths.min() > 90


def test_mix_scatters_single_bits():
    flips = [int(mix(np.uint64(5)) ^ mix(np.uint64(5) ^ np.uint64(1 << bit))).bit_count() for bit in range(64)]
    assert 28 < np.mean(flips) < 36


def test_there_must_be_something_to_sample():
    with pytest.raises(BadRequest, match="0 positions"):
        stream(0, 1, 0, 0)
    with pytest.raises(BadRequest, match="place -1"):
        stream(-1, 1, 5, 0)
