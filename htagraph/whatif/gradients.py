def with_gradients_exchanged(state, count, bandwidth, gradients):
    from htagraph.whatif.links import transfers
    transfers(state)
    return state
