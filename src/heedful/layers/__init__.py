"""What models are built from: embeddings and positions, recurrent layers, convolutions, blocks, pooling, the output.

Each is imported from its own file, for a model needs few of them.
"""
