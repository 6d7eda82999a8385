"""Classifiers that an experiment on a table trains when it begins, on rows that it does not explain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from holdfast.cases import AskableModel
from holdfast.data.dataset import DataSet, Examples
from holdfast.data.network import Network, Place
from holdfast.data.table_experiments import TableData
from holdfast.data.tabular import Table
from holdfast.data.training import fit
from holdfast.draws import generator
from holdfast.errors import HoldfastError
from holdfast.models.neighbours import NeighboursModel
from holdfast.models.sklearn import from_sklearn
from holdfast.models.torch import TorchModel
from holdfast.models.trees import TreeModel, trees
from holdfast.settings import Count

_BATCH, _EPOCHS = 32, 20  # rows of a training step of table-mlp, and how often it sees each row


@dataclass(frozen=True)
class _Trained(Network):
    """A classifier that is trained when the experiment begins. The same settings give the same classifier.

    Attributes:
        weights: ``"train"``.
        rows: Train on at most this many of the rows that are not explained.
    """

    weights: str = "train"
    rows: Count = 2000

    @abstractmethod
    def fitted(self, table: Table, rows: Tensor) -> TreeModel | NeighboursModel | TorchModel:
        """Train the classifier on some rows of a table.

        Args:
            table: The whole table.
            rows: The numbers of the rows to train on.
        """

    def model(self, data: DataSet, examples: Examples, place: Place) -> tuple[AskableModel, dict[str, str]]:
        assert isinstance(data, TableData)
        if self.weights != "train":
            raise HoldfastError(f'model.weights should be "train" for {self.name}: files of trees are for table-trees.')
        table = data.table()
        order, others = data.order(len(table)), data.others(len(table))
        if not len(others):
            raise HoldfastError(f"no row is left to train {self.name} on: lower data.count.")
        rest = torch.ones(len(table), dtype=torch.bool)
        rest[others] = False
        rows, explained = order[others[: self.rows]], order[rest]
        made = self.fitted(table, rows)
        right = float((made(table.x[explained]).argmax(1).cpu() == table.y[explained]).double().mean())
        about = f"{len(rows)} other rows; {right:.0%} of the {len(explained)} rows are right"
        return made.on(place.device), {"table": data.title, "trained on": about}


@dataclass(frozen=True)
class TableForest(_Trained):
    """A random forest of scikit-learn, trained when the experiment begins.

    Attributes:
        count: How many trees.
        depth: How deep they are.
    """

    count: Count = 20
    depth: Count = 5
    name: ClassVar[str] = "table-forest"

    def fitted(self, table: Table, rows: Tensor) -> TreeModel | NeighboursModel | TorchModel:
        ensemble = _library("sklearn.ensemble", self.name, "scikit-learn")
        forest = ensemble.RandomForestClassifier(self.count, max_depth=self.depth, random_state=self.seed)
        forest.fit(table.columns.unscaled(table.x[rows]), table.y[rows].numpy())
        return trees(forest, columns=table.columns, classes=[table.classes[number] for number in forest.classes_])


@dataclass(frozen=True)
class TableXgboost(_Trained):
    """Boosted trees of XGBoost, trained when the experiment begins.

    Attributes:
        count: How many rounds, each with one tree for two classes, and otherwise one for each class.
        depth: How deep the trees are.
    """

    count: Count = 50
    depth: Count = 4
    name: ClassVar[str] = "table-xgboost"

    def fitted(self, table: Table, rows: Tensor) -> TreeModel | NeighboursModel | TorchModel:
        library = _library("xgboost", self.name, "xgboost")
        _check_classes(table, rows, self.name)
        boosted = library.XGBClassifier(
            n_estimators=self.count, max_depth=self.depth, random_state=self.seed, n_jobs=1, tree_method="exact"
        )
        boosted.fit(table.columns.unscaled(table.x[rows]), table.y[rows].numpy())
        return trees(boosted, columns=table.columns, classes=table.classes)


@dataclass(frozen=True)
class TableKnn(_Trained):
    """The nearest neighbours among the rows that are not explained, by Euclidean distance in scales of the columns.

    Attributes:
        neighbours: How many neighbours vote. Radii of one neighbour are exact, of more they are brackets.
    """

    neighbours: Count = 1
    name: ClassVar[str] = "table-knn"

    def fitted(self, table: Table, rows: Tensor) -> TreeModel | NeighboursModel | TorchModel:
        columns = table.columns
        made = NeighboursModel(table.x[rows], table.y[rows], self.neighbours, columns.bounds(), classes=table.classes)
        made.columns, made.domain, made.features = columns.names, columns.domain(), columns.features()
        return made


@dataclass(frozen=True)
class TableLogistic(_Trained):
    """Logistic regression of scikit-learn on standardised columns, trained when the experiment begins."""

    name: ClassVar[str] = "table-logistic"

    def fitted(self, table: Table, rows: Tensor) -> TreeModel | NeighboursModel | TorchModel:
        linear = _library("sklearn.linear_model", self.name, "scikit-learn")
        from sklearn.pipeline import make_pipeline  # not a dependency
        from sklearn.preprocessing import StandardScaler

        _check_classes(table, rows, self.name)
        steps = make_pipeline(StandardScaler(), linear.LogisticRegression(max_iter=1000, random_state=self.seed))
        steps.fit(table.columns.unscaled(table.x[rows]), table.y[rows].numpy())
        return from_sklearn(steps, columns=table.columns, classes=table.classes)


@dataclass(frozen=True)
class TableMlp(_Trained):
    """A multi-layer perceptron of torch with two hidden layers, trained when the experiment begins.

    Attributes:
        width: How many units each hidden layer has.
    """

    width: Count = 32
    name: ClassVar[str] = "table-mlp"

    def fitted(self, table: Table, rows: Tensor) -> TreeModel | NeighboursModel | TorchModel:
        columns = table.columns
        x, y = table.x[rows].float(), table.y[rows]
        with torch.random.fork_rng([]):
            torch.manual_seed(self.seed)
            network = nn.Sequential(
                nn.Linear(columns.width, self.width),
                nn.ReLU(),
                nn.Linear(self.width, self.width),
                nn.ReLU(),
                nn.Linear(self.width, len(table.classes)),
            )
        middle, drawing = x.mean(0), generator(self.seed)

        def batches() -> Iterator[tuple[Tensor, Tensor]]:
            for batch in torch.randperm(len(x), generator=drawing).split(_BATCH):
                yield x[batch] - middle, y[batch]

        steps = -(-len(x) // _BATCH)
        fit(network, batches, lambda _: 0.0, epochs=self.epochs or _EPOCHS, steps=steps)
        module = network.double().eval().requires_grad_(False)
        centred = (middle.double(), torch.ones(columns.width, dtype=torch.float64))
        made = TorchModel(module, columns.bounds(), normalize=centred, classes=table.classes)
        made.columns, made.domain, made.features = columns.names, columns.domain(), columns.features()
        return made


def _library(module: str, network: str, package: str) -> Any:
    """Import a module of a library that is no dependency."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise HoldfastError(f"{network} needs {package}: pip install {package}.") from error


def _check_classes(table: Table, rows: Tensor, network: str) -> None:
    """Refuse to train on rows without one of the classes: numbers of classes would be other ones."""
    lacking = [name for number, name in enumerate(table.classes) if not bool((table.y[rows] == number).any())]
    if lacking:
        raise HoldfastError(
            f"{network} needs rows of every class, and none of the {len(rows)} rows that are not explained is of "
            f"{lacking[0]}: set data.shuffle, or lower data.count."
        )
