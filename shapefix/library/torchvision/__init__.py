"""torchvision: models with replaceable layers, datasets of images, transforms.

torchvision is not a dependency of this project. These facts are from its sources (0.29, equal since
0.13) and were never executed.
"""
