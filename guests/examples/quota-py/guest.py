"""The imports and exports of the component. The other files run in any Python too."""

import json

from wit_world import exports
from wit_world.exports import reconciler
from wit_world.imports import log

import innkeeper
import quota

OUTCOMES = {
    "complete": reconciler.Outcome_Complete,
    "partial": reconciler.Outcome_Partial,
    "failed": reconciler.Outcome_Failed,
}


class Reconciler(exports.Reconciler):
    def describe(self):
        return json.dumps(quota.describe())

    def reconcile(self, observed):
        tag, text = innkeeper.run(quota.reconcile, observed, write)
        return OUTCOMES[tag](text)


def write(level, line):
    log.write(log.Level[level], line)
