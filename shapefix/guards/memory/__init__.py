"""`shapefix guard --oom`: handlers of exhausted GPU memory around training steps."""
