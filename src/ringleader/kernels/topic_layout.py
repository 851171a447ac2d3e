"""Arrays that travel together through the passes of a topic model."""

from __future__ import annotations

from typing import NamedTuple

from ringleader.arrays import Floats


class TopicRows(NamedTuple):
    """A topic model of actors x items, as the pull of a review is found from it.

    shares : (n_actors, K), topics of each actor. counts : (n_actors, K), its reviews by topic
    chances : (n_items, K), the chance of each item within each topic
    nearer : (n_items, K), how much likelier than among all it is there, as far as the topic is a taste
    prior : (K,), reviews by topic that everybody is believed to have besides their own
    """

    shares: Floats
    counts: Floats
    chances: Floats
    nearer: Floats
    prior: Floats
