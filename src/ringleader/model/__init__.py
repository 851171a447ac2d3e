"""Belief: what the model is, without saying how it is learned.

- ``config.py``     ModelConfig: every setting, and the presets paper, corrected and default
- ``problem.py``    Problem: tensor, targets and settings, checked and laid out for the kernels
- ``state.py``      State: every array a fit carries from sweep to sweep; saved, resumed, extended
- ``start.py``      where a fit starts
- ``contrast.py``   negatives of a sweep, counter-based
- ``hyper.py``      prior variances, multiplicative gamma process, heads
- ``objective.py``  log posterior, held-out likelihood, effective rank
- ``posterior.py``  Laplace posteriors of rows, leave-one-out log-odds of cells
"""
