//! What the page consists of besides its text. All of it is within the page, because the page loads nothing.

pub(super) const STYLE: &str = concat!(include_str!("style.css"), "\n", include_str!("controls.css"));
pub(super) const SCRIPT: &str = include_str!("page.js");
/// The page's icon, within the page: another request would be refused by its own policy.
pub(super) const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
    %3Crect width='16' height='16' rx='4' fill='%230a5cad'/%3E\
    %3Cpath d='M7 4 3.5 8 7 12M9 4l3.5 4L9 12' fill='none' stroke='white' stroke-width='1.6'/%3E%3C/svg%3E";
