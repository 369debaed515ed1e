"""What can be fitted to weighted rows besides networks: lines, smooth curves, trees, forests.

All learners are fitted alike (`LearnerBase`): features as they are (NaN where missing), a label per
row, a weight per row, and rows held out to choose a penalty or a number of trees by. None needs
torch. What they learn can be written as plain values and arrays, and stands for nobody in
particular: no leaf of a tree holds fewer than ten people, and no counts are kept.
"""

from dcem.learners.learner import LearnerBase, Sample
from dcem.learners.registry import LEARNERS, dump_learner, load_learner, make_learner

__all__ = ["LEARNERS", "LearnerBase", "Sample", "dump_learner", "load_learner", "make_learner"]
