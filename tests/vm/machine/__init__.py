# SPDX-License-Identifier: Apache-2.0
"""The test machine: its packages, its image, its shapes, its boot."""
