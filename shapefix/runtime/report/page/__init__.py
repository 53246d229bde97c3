"""One page that shows a run: it stands alone in its file, and asks for nothing over the network."""
