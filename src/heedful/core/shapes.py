"""The one legend of axes. Every signature and every suffix of a tensor's name uses these letters.

==  ==========================================================================
B   batch: sentences, or rows of any other kind; always axis 0
S   source positions
T   target positions
Q   query positions of an attention
K   key positions of an attention
D   model width
H   heads
E   width of one head
M   inner width of a feed-forward layer or of a score
V   vocabulary
L   layers
N   hypotheses of one sentence (the beam)
R   rows with an axis folded in: B x N, or the real positions of a batch
U   utterances of a dialogue
F   audio frames
C   classes; in a fused projection its parts (query, key, value)
I   width of an input that is not D
O   width of an output that is not D
G   all gates of a recurrent layer, 3 D or 4 D
P   positions of any other kind: of a forced beginning, of a text looked into
W   blocks of a windowed attention; words
X   any other width
Z   rows with the heads folded in: B x H
==  ==========================================================================

A name such as ``query_BHQE`` carries its axes where they move; elsewhere the signature says them once.
"""
