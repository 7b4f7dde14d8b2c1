"""Cards of the same heads over other lines, put together."""

from heedful.analysis.bootstrap import Estimate
from heedful.analysis.heads_card import HeadCard, RoleFamily, Score
from heedful.runs.heads import add_scores


def score(family: RoleFamily, share: float) -> Score:
    return Score(family, family, 100, Estimate(share, share, share), None, None, 0.1)


def card(*scores: Score) -> HeadCard:
    return HeadCard(
        site="decoder.layers.0.cross_attention",
        kind="cross",
        layer=0,
        head=1,
        confidence=None,
        entropy=None,
        evenness=None,
        offsets={},
        scores=scores,
        roles=tuple(each.name for each in scores),
    )


def test_roles_stay_in_their_order_whichever_text_they_come_from() -> None:
    own, other = card(score("sink", 0.6), score("copy", 0.9)), card(score("alignment", 0.7), score("positional", 0.95))
    both = add_scores(own, other, ("alignment",))
    assert [each.name for each in both.scores] == ["copy", "alignment", "sink"]  # by how much they are above the mark
    assert both.roles == ("sink", "alignment", "copy")  # the most telling first
