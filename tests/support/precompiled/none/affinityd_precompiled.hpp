// SPDX-License-Identifier: Apache-2.0
// Nothing: what includes this is compiled without a precompiled header.
#pragma once
