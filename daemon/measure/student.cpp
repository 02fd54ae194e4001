// SPDX-License-Identifier: Apache-2.0
#include "measure/student.hpp"

#include <cmath>
#include <numbers>

namespace affinityd::measure {

namespace {

constexpr int most_steps = 200;
constexpr double precision = 1e-9;

class Student {
  public:
    explicit Student(double degrees)
        : degrees_(degrees), scale_(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2) -
                                    0.5 * std::log(degrees * std::numbers::pi)) {}

    [[nodiscard]] double density(double t) const {
        return std::exp(scale_ - (degrees_ + 1) / 2 * std::log1p(t * t / degrees_));
    }
    /// P(T > t) for t >= 0, by Simpson's rule in u = t/(1+t), which maps the long tail to a short interval.
    [[nodiscard]] double tail(double t) const {
        constexpr int steps = 400;
        const double from = t / (1 + t);
        const double width = (1 - from) / steps;
        double area = 0;
        for (int i = 0; i <= steps; ++i) {
            const double u = from + width * i;
            if (u >= 1)
                continue; // the limit is 0 for two degrees or more; student_quantile handles one by itself
            const double weight = i == 0 || i == steps ? 1 : (i % 2 == 1 ? 4 : 2);
            area += weight * density(u / (1 - u)) / ((1 - u) * (1 - u));
        }
        return area * width / 3;
    }

  private:
    double degrees_, scale_;
};

} // namespace

double student_quantile(double tail, unsigned degrees) {
    if (degrees <= 1) return 1 / std::tan(std::numbers::pi * tail); // Cauchy
    const Student student(degrees);
    double t = 0; // Newton's method: the tail is convex, so that it comes from below and never leaps beyond
    for (int i = 0; i < most_steps; ++i) {
        const double step = (student.tail(t) - tail) / student.density(t);
        t += step;
        if (step <= precision * t) break;
    }
    return t;
}

} // namespace affinityd::measure
