// SPDX-License-Identifier: Apache-2.0
// clang 16 implements the concepts that libstdc++ 12 wants for std::expected, but states an older date.
#pragma GCC system_header
#undef __cpp_concepts
#define __cpp_concepts 202002L
