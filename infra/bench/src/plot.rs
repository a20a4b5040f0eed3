//! Draws results as SVG, on a background of its own, which is light or dark as the reader's browser prefers.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::figures::{number, text};

const WIDTH: f64 = 720.0;
/// The corners of the plot's area.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 684.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 336.0;
const LEGEND_ROW: f64 = 22.0;
const STYLE: &str = "\
    text { font: 14px system-ui, sans-serif; fill: #1f2328 } .title { font-weight: 600; font-size: 16px }
    .page { fill: #ffffff } .grid { stroke: #d1d9e0 } .line { stroke-width: 2 }
    .s0 { stroke: #0969da; fill: #0969da } .s1 { stroke: #bc4c00; fill: #bc4c00 } .s2 { stroke: #1a7f37; fill: #1a7f37 }
    .s3 { stroke: #8250df; fill: #8250df } .s4 { stroke: #cf222e; fill: #cf222e }
    .s1.line { stroke-dasharray: 8 3 } .s2.line { stroke-dasharray: 2 3 }
    .s3.line { stroke-dasharray: 8 3 2 3 } .s4.line { stroke-dasharray: 14 4 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .page { fill: #0d1117 } .grid { stroke: #3d444d }
      .s0 { stroke: #58a6ff; fill: #58a6ff } .s1 { stroke: #f0883e; fill: #f0883e } .s2 { stroke: #3fb950; fill: #3fb950 }
      .s3 { stroke: #bc8cff; fill: #bc8cff } .s4 { stroke: #ff7b72; fill: #ff7b72 }
    }
    .line { fill: none }";

/// Values on a logarithmic scale, against places on the x-axis. It has colours for five series.
pub(crate) struct Plot {
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    /// Places, in ascending order, and their labels.
    pub(crate) x: Vec<(f64, String)>,
    pub(crate) series: Vec<Series>,
    /// Whether lines join the values of a series. Without lines, each value is written beside its mark.
    pub(crate) is_joined: bool,
}

/// Values, one for each place.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

impl Plot {
    /// Returns the place of a number on a logarithmic x-axis, and its label, such as `10 k`.
    pub(crate) fn power(records: u64) -> (f64, String) {
        let label = match records {
            1_000_000.. => format!("{} M", records / 1_000_000),
            1_000.. => format!("{} k", records / 1_000),
            _ => records.to_string(),
        };
        ((records as f64).log10(), label)
    }

    /// Writes the drawing to `FOLDER/NAME.svg`.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> Result<(), String> {
        let (path, svg) = (folder.join(name).with_extension("svg"), self.svg().map_err(text)?);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, svg));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    fn svg(&self) -> Result<String, std::fmt::Error> {
        let Self { title, unit, .. } = self;
        let height = BOTTOM + 44.0 + LEGEND_ROW * self.series.len() as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\">\n<title>{title}</title>\n<style>\n{STYLE}\n</style>\n\
             <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"30\">{title}</text>\n"
        );
        let (low, high) = self.decades();
        for decade in low..=high {
            let value = 10_f64.powi(decade);
            let y = self.y(value);
            writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>")?;
            writeln!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value} {unit}</text>", LEFT - 6.0, y + 5.0)?;
        }
        for (place, label) in &self.x {
            let (x, y) = (self.x(*place), BOTTOM + 22.0);
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>")?;
        }
        for (number, series) in self.series.iter().enumerate() {
            self.draw(&mut svg, number, series)?;
        }
        svg.push_str("</svg>\n");
        Ok(svg)
    }

    fn draw(&self, svg: &mut String, order: usize, series: &Series) -> std::fmt::Result {
        let points =
            self.x.iter().zip(&series.values).map(|((place, _), value)| (self.x(*place), self.y(*value), value));
        let mut line = String::new();
        for (x, y, value) in points {
            write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" })?;
            writeln!(svg, "<circle class=\"s{order}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>")?;
            if !self.is_joined {
                writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 9.0, y + 5.0, number(*value))?;
            }
        }
        let y = BOTTOM + 50.0 + LEGEND_ROW * order as f64;
        if self.is_joined {
            writeln!(svg, "<path class=\"s{order} line\" d=\"{line}\"/>")?;
            writeln!(svg, "<path class=\"s{order} line\" d=\"M{LEFT} {y}h40\"/>")?;
        } else {
            writeln!(svg, "<circle class=\"s{order}\" cx=\"{}\" cy=\"{y}\" r=\"4\"/>", LEFT + 20.0)?;
        }
        writeln!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", LEFT + 50.0, y + 5.0, series.name)
    }

    /// Returns the powers of ten that enclose all values.
    fn decades(&self) -> (i32, i32) {
        let values = || self.series.iter().flat_map(|series| series.values.iter().map(|value| value.log10()));
        let low = values().fold(f64::INFINITY, f64::min).floor() as i32;
        (low, (values().fold(f64::NEG_INFINITY, f64::max).ceil() as i32).max(low + 1))
    }

    fn x(&self, place: f64) -> f64 {
        let [first, last] = [self.x.first(), self.x.last()].map(|end| end.map_or(0.0, |(place, _)| *place));
        let margin = 60.0;
        LEFT + margin + (place - first) / (last - first).max(1e-9) * (RIGHT - LEFT - 2.0 * margin)
    }

    fn y(&self, value: f64) -> f64 {
        let (low, high) = self.decades();
        BOTTOM - (value.log10() - f64::from(low)) / f64::from(high - low) * (BOTTOM - TOP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_powers_of_ten_that_enclose_them() {
        let series = |values: [f64; 2]| Series { name: "a".to_owned(), values: values.to_vec() };
        let x = [1_000, 6_000_000].map(Plot::power).to_vec();
        let plot = Plot { title: "t", unit: "ms", x, series: vec![series([0.3, 9.0])], is_joined: true };
        assert_eq!(plot.decades(), (-1, 1));
        assert_eq!([0.1, 1.0, 10.0].map(|value| number(plot.y(value))), ["336", "196", "56"]);
        let svg = plot.svg().unwrap();
        assert!([">1 k<", ">6 M<", ">0.1 ms<", ">10 ms<"].iter().all(|label| svg.contains(label)), "{svg}");
    }
}
