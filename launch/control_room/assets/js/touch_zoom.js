// A finger over a chart selects as the mouse does. uPlot listens to the mouse alone, and a browser
// makes a finger into a mouse only when it taps.

export function touchZoom() {
  return { hooks: { ready: [(plot) => listen(plot)] } };
}

function listen(plot) {
  let from = null;
  const at = (event) => Math.max(0, Math.min(plot.over.clientWidth, event.clientX - plot.over.getBoundingClientRect().left));
  const select = (event, isFinal) => {
    const left = Math.min(from, at(event)), width = Math.abs(at(event) - from);
    plot.setSelect({ left, width, top: 0, height: plot.over.clientHeight }, isFinal);
  };
  const leave = () => {
    from = null;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  };
  plot.over.addEventListener("pointerdown", (event) => {
    // A second finger means neither of the two.
    if (event.pointerType === "touch") event.isPrimary ? (from = at(event)) : leave();
  });
  plot.over.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" && from !== null) select(event, false);
  });
  plot.over.addEventListener("pointerup", (event) => {
    if (event.pointerType !== "touch" || from === null) return;
    select(event, true);
    leave();
  });
  // The browser has made it into scrolling.
  plot.over.addEventListener("pointercancel", leave);
}
