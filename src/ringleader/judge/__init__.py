"""Judge: labels in, probabilities out.

``Judge`` fits a head for each target when it is asked for, and ``choose_scorer`` says which score a mode has: that of
its head, of the joint head, one transferred from other modes, or the label-free suspicion.
"""

from ringleader.judge.contributions import OWN_LABEL, UNREMARKABLE, Contributions
from ringleader.judge.head import Head, Judgement
from ringleader.judge.inputs import Inputs
from ringleader.judge.judge import Judge, Prevalence
from ringleader.judge.label_free import LabelFree
from ringleader.judge.scorer import JointHeads, Scorer, choose_scorer

__all__ = [
    "OWN_LABEL",
    "UNREMARKABLE",
    "Contributions",
    "Head",
    "Inputs",
    "JointHeads",
    "Judge",
    "Judgement",
    "LabelFree",
    "Prevalence",
    "Scorer",
    "choose_scorer",
]
