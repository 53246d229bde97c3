"""What torchvision makes: models with the sizes that everybody replaces, datasets of images, transforms.

torchvision is no dependency of this project. These facts were read in its sources (0.29, and alike since
0.13) and never executed.
"""
