"""Settings by the names of KataGo's configuration: their ranges, defaults, and which parameters of our search they are.

A setting without a parameter is one that our search has no use for: it can be set and read, and does nothing.
Source: KataGo v1.17.2 `cpp/program/setup.cpp`, as for its GTP engine, and `cpp/search/searchparams.cpp`,
`changeableParametersToJson`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from keima.errors import BadRequest
from keima.systems.parameters import Choice, Number, Parameters
from keima.systems.presets import parameter_names

Value = bool | int | float | str

_TABLE = """
cpuctExploration                         1.0    0       10      cpuct
cpuctExplorationBase                     500.0  10      100000  cpuct_base
cpuctExplorationLog                      0.45   0       10      cpuct_factor
cpuctUtilityStdevPrior                   0.4    1e-8    10      stdev_prior
cpuctUtilityStdevPriorWeight             2.0    0       100     stdev_prior_weight
cpuctUtilityStdevScale                   0.85   0       1       stdev_scale
dynamicScoreCenterScale                  0.75   0.2     5       dynamic_scale
dynamicScoreCenterZeroWeight             0.2    0       1       dynamic_center_zero
dynamicScoreUtilityFactor                0.3    0       1       dynamic_score
fpuParentWeightByVisitedPolicy           true
fpuParentWeightByVisitedPolicyPow        2.0    0       5       fpu_policy_power
fpuReductionMax                          0.2    0       2       fpu_reduction
lcbStdevs                                5.0    1       12      lcb_stdevs
minVisitPropForLCB                       0.15   0       1       lcb_min_visits
nnPolicyTemperature                      1.0    0.01    5       policy_temperature
noResultUtilityForWhite                  0.0    -1      1       draw_score
noisePruneUtilityScale                   0.15   0.001   10      noise_prune_scale
numVirtualLossesPerThread                1.0    0.01    1000    virtual_loss
policyOptimism                           1.0    0       1       policy_optimism
rootDirichletNoiseTotalConcentration     10.83  0.001   10000   dirichlet_total
rootFpuReductionMax                      0.1    0       2       root_fpu_reduction
rootNoiseEnabled                         false
rootNumSymmetriesToSample                1      1       8       root_symmetries
rootPolicyOptimism                       0.2    0       1       root_policy_optimism
rootPolicyTemperature                    1.0    0.01    100     root_policy_temperature
staticScoreUtilityFactor                 0.1    0       1       static_score
useLcbForSelection                       true
valueWeightExponent                      0.25   0       1       value_weight_exponent
"""
"""Settings of our search: name, default, least, most, parameter."""
_IDLE = """
    alwaysComputePassAliveUnderSuicideRules=auto chosenMovePrune=1.0:0:1e10 chosenMoveSubtract=0.0:0:1e10
    chosenMoveTemperature=0.1:0:5 chosenMoveTemperatureEarly=0.5:0:5 chosenMoveTemperatureHalflife=19.0:0.1:100000
    chosenMoveTemperatureOnlyBelowProb=1.0:0:1 conservativePass=true drawEquivalentWinsForWhite=0.5:0:1
    enableMorePassingHacks=true enablePassingHacks=true endgameTurnTimeDecay=100.0:0:1000 fillDameBeforePass=true
    fpuLossProp=0.0:0:1 fpuParentWeight=0.0:0:1 futileVisitsThreshold=0.0:0.01:1 graphSearchCatchUpLeakProb=0.0:0:1
    graphSearchRepBound=11:3:50 humanSLChosenMoveIgnorePass=false humanSLChosenMovePiklLambda=1e9:0:1e9
    humanSLChosenMoveProp=0.0:0:1 humanSLCpuctExploration=1.0:0:1000 humanSLCpuctPermanent=0.0:0:1000
    humanSLOppExploreProbWeightful=0.0:0:1 humanSLOppExploreProbWeightless=0.0:0:1
    humanSLPlaExploreProbWeightful=0.0:0:1 humanSLPlaExploreProbWeightless=0.0:0:1
    humanSLRootExploreProbWeightful=0.0:0:1 humanSLRootExploreProbWeightless=0.0:0:1 ignoreAllHistory=false
    ignorePreRootHistory=false lagBuffer=1.0:0:3600 maxPlayouts=1125899906842624:1:1125899906842624
    maxPlayoutsPondering=1125899906842624:1:1125899906842624 maxTime=1e20:0:1e20 maxTimePondering=60.0:0:1e20
    maxVisits=1125899906842624:1:1125899906842624 maxVisitsPondering=1125899906842624:1:1125899906842624
    midgameTimeFactor=1.0:0.01:100 midgameTurnPeakTime=130.0:0:1000 minPlayoutsPerThread=8.0:0:1e20
    noisePruningCap=1e50:0:1e50 numSearchThreads=1:1:4096 obviousMovesPolicyEntropyTolerance=0.3:0.001:2
    obviousMovesPolicySurpriseTolerance=0.15:0.001:2 obviousMovesTimeFactor=1.0:0.01:1
    overallocateTimeFactor=1.0:0.01:100 playoutDoublingAdvantage=0.0:-3:3 playoutDoublingAdvantagePla=E
    rootDesiredPerChildVisitsCoeff=0.0:0:100 rootDirichletNoiseWeight=0.25:0:1 rootEndingBonusPoints=0.5:-1:1
    rootFpuLossProp=0.0:0:1 rootPolicyTemperatureEarly=1.0:0.01:100 rootPruneUselessMoves=true rootSymmetryPruning=true
    searchFactorAfterOnePass=0.5:0:1 searchFactorAfterTwoPass=0.25:0:1 subtreeValueBiasFactor=0.45:0:1
    subtreeValueBiasFreeProp=0.8:0:1 subtreeValueBiasTableNumShards=65536:1:1e9 subtreeValueBiasWeightExponent=0.85:0:1
    treeReuseCarryOverTimeFactor=0.0:0:1 uncertaintyCoeff=0.25:0.0001:1 uncertaintyExponent=1.0:0:2
    uncertaintyMaxWeight=8.0:1:100 useGraphSearch=true useNoisePruning=true useNonBuggyLcb=true useUncertainty=true
    wideRootNoise=0.0:0:5 winLossUtilityFactor=1.0:0:1
"""
"""Settings that none of its parameters is: name=default, and of numbers :least:most."""


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        default: its value in KataGo's GTP engine; its type is the setting's.
        least, most: of numbers.
        parameter: of our search, which the number is; None for none.
    """

    name: str
    default: Value
    least: float = 0.0
    most: float = 0.0
    parameter: str | None = None

    def read(self, text: str) -> Value:
        """A value from its text. Raises BadRequest: the setting does not take it."""
        if isinstance(self.default, str):
            return text
        if isinstance(self.default, bool):
            if text.lower() not in ("true", "false"):
                raise BadRequest(f"{self.name} must be true or false, not {text[:40]}")
            return text.lower() == "true"
        number = read_number(self.name, text)
        if not self.least <= number <= self.most:
            raise BadRequest(f"{self.name} must be from {self.least:.16g} to {self.most:.16g}, not {text[:40]}")
        if isinstance(self.default, float):
            return number
        if number != int(number):
            raise BadRequest(f"{self.name} must be a whole number, not {text[:40]}")
        return int(number)


def _setting(name: str, default: str, *rest: str) -> Setting:
    value: Value = default
    if default in ("true", "false"):
        value = default == "true"
    elif rest:
        value = int(default) if default.isdecimal() else float(default)
    return Setting(name, value, *map(float, rest[:2]), *rest[2:])  # type: ignore[arg-type]


def settings_of(text: str) -> dict[str, Setting]:
    """Settings by name, from words such as `name=default` and, of numbers, `name=default:least:most`."""
    pairs = (one.split("=") for one in text.split())
    return {name: _setting(name, *values.split(":")) for name, values in pairs}


_OURS = {line.split()[0]: _setting(*line.split()) for line in _TABLE.strip().splitlines()}
SETTINGS: Mapping[str, Setting] = dict(sorted({**_OURS, **settings_of(_IDLE)}.items()))
"""Every setting of the search by name, in alphabetical order."""


def read_number(name: str, text: str) -> float:
    """A finite number; true and false are 1 and 0. Raises BadRequest: it is none."""
    try:
        number = {"true": 1.0, "false": 0.0}.get(text.lower())
        number = float(text) if number is None else number
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadRequest(f"{name} must be a number, not {text[:40]}")
    return number


def is_known(name: str) -> bool:
    """Is there a setting of that name, or a parameter of the search?"""
    return name in SETTINGS or name in parameter_names()


def changes_of(name: str, text: str) -> dict[str, Number]:
    """The parameters of our search that a setting, or one by its own name, sets. Raises BadRequest: a bad value."""
    setting = SETTINGS.get(name)
    if setting is None:
        return {name: read_number(name, text)}
    value = setting.read(text)
    if name == "useLcbForSelection":
        return {"choice": Choice.LCB if value else Choice.VISITS}
    if name == "rootNoiseEnabled":
        return {"root_noise": float(SETTINGS["rootDirichletNoiseWeight"].default) if value else 0.0}
    if name == "fpuParentWeightByVisitedPolicy":
        return {} if value else {"fpu_policy_power": 0.0}
    return {} if setting.parameter is None or isinstance(value, str) else {setting.parameter: value}


def value_of(name: str, parameters: Parameters) -> Value | None:
    """What a setting, or a parameter by its own name, is in a search; None where the search has no use for it."""
    setting = SETTINGS.get(name)
    if setting is None:
        return parameters[name]
    if name == "useLcbForSelection":
        return parameters["choice"] == Choice.LCB
    if name == "rootNoiseEnabled":
        return parameters["root_noise"] > 0
    if name == "fpuParentWeightByVisitedPolicy":
        return parameters["fpu_policy_power"] > 0
    return None if setting.parameter is None else parameters[setting.parameter]
