"""Captum: any ``captum.attr`` object as an explainer, and any explainer as a Captum ``Attribution``::

ranking = from_captum(captum.attr.Saliency(net))(cases)
scores = AsCaptum(hf.GreedyAS(), net, bounds=(0, 1)).attribute(images, target=labels)
"""

from holdfast.interop.captum.attribution import AsCaptum
from holdfast.interop.captum.explainer import FromCaptum, from_captum

__all__ = ["AsCaptum", "FromCaptum", "from_captum"]
