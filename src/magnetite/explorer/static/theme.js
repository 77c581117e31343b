// Before the first paint, so that the page does not flash in the other theme.
document.documentElement.dataset.theme = localStorage.getItem("magnetite-theme") || "auto";
