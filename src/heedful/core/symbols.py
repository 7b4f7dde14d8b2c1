"""The four ids that every vocabulary reserves, in the order every tokenizer must give them."""

PAD_ID = 0
UNK_ID = 1
BOS_ID = 2
EOS_ID = 3
NUM_RESERVED = 4
