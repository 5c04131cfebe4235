"""How much of intelligence space an agent covers (AIQ): complexity, dissimilarity, volume.

References:
    Pereyda and Holder (2025), The Artificial Intelligence Quotient (AIQ), AI 6(12):313.
"""

from robo_eval.analysis.aiq.complexity import Complexity, half_samples, mccp, relative
from robo_eval.analysis.aiq.dissimilarity import (
    MIXTURES,
    Dissimilarities,
    dissimilarities,
    dissimilarity,
    triangle_violations,
)
from robo_eval.analysis.aiq.entropy import (
    ImageEntropy,
    ObservationEntropy,
    image_entropy,
    observation_entropy,
)
from robo_eval.analysis.aiq.quotient import (
    Quotient,
    apti,
    around,
    quotient,
    quotient_interval,
    quotients,
)
from robo_eval.analysis.aiq.space import Space, space
from robo_eval.analysis.aiq.tree import ClusterTree, cluster_tree
from robo_eval.analysis.aiq.volume import Hull, determinant_volume, hull_volume

__all__ = [
    "MIXTURES",
    "ClusterTree",
    "Complexity",
    "Dissimilarities",
    "Hull",
    "ImageEntropy",
    "ObservationEntropy",
    "Quotient",
    "Space",
    "apti",
    "around",
    "cluster_tree",
    "determinant_volume",
    "dissimilarities",
    "dissimilarity",
    "half_samples",
    "hull_volume",
    "image_entropy",
    "mccp",
    "observation_entropy",
    "quotient",
    "quotient_interval",
    "quotients",
    "relative",
    "space",
    "triangle_violations",
]
