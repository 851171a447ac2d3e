"""The reference as a backend."""

from __future__ import annotations

from ringleader.arrays import Codes, Floats
from ringleader.kernels.checks import check_blocks, check_cells, check_codes, check_labels, check_view
from ringleader.kernels.host_arrays import HostArrays
from ringleader.kernels.layout import Blocks, Rule, Statistics, Terms, View
from ringleader.kernels.reference import blocks as reference
from ringleader.kernels.reference import bursts, grouped, pairs, topics, ways
from ringleader.kernels.single_block import head_moments


class ReferenceBackend(HostArrays):
    """NumPy, one thread."""

    name = "reference"
    draw_negatives = staticmethod(reference.draw_negatives)
    draw_numbered = staticmethod(reference.draw_numbered)
    owned_draws = staticmethod(reference.owned_draws)
    group_owned = staticmethod(reference.group_owned)
    group_drawn = staticmethod(reference.group_drawn)
    head_moments = staticmethod(head_moments)
    lockstep_of_actors = staticmethod(pairs.lockstep_of_actors)
    often_met = staticmethod(pairs.often_met)
    lockstep_of_met = staticmethod(pairs.lockstep_of_met)
    support_of_groups = staticmethod(pairs.support_of_groups)
    largest_bursts = staticmethod(bursts.largest_bursts)
    excess_around = staticmethod(bursts.excess_around)
    rhythms = staticmethod(bursts.rhythms)
    sums_by_code = staticmethod(grouped.sums_by_code)
    weighted_sums = staticmethod(grouped.weighted_sums)
    sums_of_rows = staticmethod(grouped.sums_of_rows)
    halved_sums = staticmethod(grouped.halved_sums)
    top_sums = staticmethod(grouped.top_sums)
    keep_larger = staticmethod(grouped.keep_larger)
    counts_of_pairs = staticmethod(grouped.counts_of_pairs)
    middles = staticmethod(grouped.middles)
    dense_ranks = staticmethod(grouped.dense_ranks)
    number_places = staticmethod(grouped.number_places)
    distinct_pairs = staticmethod(grouped.distinct_pairs)
    stable_order = staticmethod(pairs.stable_order)
    topic_counts = staticmethod(topics.topic_counts)
    topic_counts_of_both = staticmethod(topics.topic_counts_of_both)
    drawn_to_items = staticmethod(topics.drawn_to_items)
    way_sums = staticmethod(ways.way_sums)
    add_others = staticmethod(ways.add_others)
    add_curve = staticmethod(ways.add_curve)

    def sweep_blocks(
        self, view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats
    ) -> None:
        check_blocks(view, blocks)
        check_labels(view, blocks, rule, terms, statistics, cavity)
        reference.sweep_blocks(view, blocks, rule, terms, statistics, cavity)

    def step_blocks(
        self,
        view: View,
        blocks: Blocks,
        rule: Rule,
        terms: Terms,
        statistics: Statistics,
        cavity: Floats,
        moments: tuple[Floats, Floats],
    ) -> None:
        check_blocks(view, blocks)
        check_labels(view, blocks, rule, terms, statistics, cavity)
        reference.step_blocks(view, blocks, rule, terms, statistics, cavity, moments)

    def block_moments(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats]:
        check_blocks(view, blocks)
        return reference.block_moments(view, blocks, rule)

    def lambda_moments(self, view: View, cells: Codes, rule: Rule) -> tuple[Floats, Floats]:
        check_cells(view, cells)
        return reference.lambda_moments(view, cells, rule)

    def log_odds(self, view: View, codes: Codes) -> Floats:
        check_codes(view, codes)
        return reference.log_odds(view, codes)

    def log_likelihood(self, view: View) -> tuple[float, float]:
        check_view(view)
        return reference.log_likelihood(view)

    def leave_one_out(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats, Floats]:
        check_blocks(view, blocks)
        return reference.leave_one_out(view, blocks, rule)
