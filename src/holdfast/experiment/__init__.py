"""Experiments: stored results are kept, and only what is missing is computed."""

from holdfast.experiment.engine import Engine as Engine
from holdfast.experiment.engine import Local as Local
from holdfast.experiment.plan import Plan as Plan
from holdfast.experiment.plan import plan_of as plan_of
from holdfast.experiment.results import Results as Results
from holdfast.experiment.run import Progress as Progress
from holdfast.experiment.run import Summary as Summary
from holdfast.experiment.run import run as run
from holdfast.experiment.store import Store as Store
from holdfast.experiment.store import Unit as Unit
from holdfast.experiment.study import Gallery as Gallery
from holdfast.experiment.study import Measure as Measure
from holdfast.experiment.study import Method as Method
from holdfast.experiment.study import Study as Study
