// SPDX-License-Identifier: Apache-2.0
#include "measure/student.hpp"

#include <cmath>
#include <numbers>

namespace affinityd::measure {

namespace {

double student_density(double t, double degrees) {
    const double scale = std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2) -
                         0.5 * std::log(degrees * std::numbers::pi);
    return std::exp(scale - (degrees + 1) / 2 * std::log1p(t * t / degrees));
}

/// P(T > t) for t >= 0, by Simpson's rule in u = t/(1+t), which maps the long tail to a short interval.
double student_tail(double t, double degrees) {
    constexpr int steps = 400;
    const double from = t / (1 + t);
    const double width = (1 - from) / steps;
    double area = 0;
    for (int i = 0; i <= steps; ++i) {
        const double u = from + width * i;
        if (u >= 1)
            continue; // the limit is 0 for two degrees or more; student_quantile handles one by itself
        const double weight = i == 0 || i == steps ? 1 : (i % 2 == 1 ? 4 : 2);
        area += weight * student_density(u / (1 - u), degrees) / ((1 - u) * (1 - u));
    }
    return area * width / 3;
}

} // namespace

double student_quantile(double tail, unsigned degrees) {
    if (degrees <= 1) return 1 / std::tan(std::numbers::pi * tail); // Cauchy
    double low = 0, high = 1;
    while (student_tail(high, degrees) > tail && high < 1e6)
        high *= 2;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (student_tail(middle, degrees) > tail ? low : high) = middle;
    }
    return (low + high) / 2;
}

} // namespace affinityd::measure
