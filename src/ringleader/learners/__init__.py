"""Learn: state in, state out, one sweep at a time.

- ``loop.py``      ``fit_loop``: sweeps, objective, callback, early stop; the only loop over sweeps
- ``passes.py``    one pass over the data, entity-complete or in batches; every learner is a way to move its blocks
- ``schedule.py``  step sizes, and the counter that draws batches
- ``natural_gradient.py``  partial natural gradient: F^-1 g per block (the default)
- ``sgd.py``       stochastic gradient: the identity in the place of F
- ``online_em.py`` online EM: decayed statistics, one coordinate at a time
- ``batch_em.py``  reference: EM over all data, full steps, the same negatives throughout
- ``gibbs.py``     reference: a sampler with true Polya-Gamma draws, for small data; the yardstick of intervals

A learner has a ``name`` and ``sweep(problem, state, touched=None) -> State``. ``get_learner(name)`` finds it.
"""

from __future__ import annotations

from ringleader.learners.loop import Learner, SweepInfo, fit_loop, get_learner

__all__ = ["Learner", "SweepInfo", "fit_loop", "get_learner"]
