"use strict";
// Tips at the marks of charts, by pointer and by keyboard (arrows, Home, End, Escape), and zoom in flame graphs
// (click or Enter; Escape goes back). Without this script marks keep their <title>.
(() => {
  const tip = document.getElementById("tip");
  let shown = null;
  const say = (mark) => mark.dataset.tip || "";
  for (const title of document.querySelectorAll(".m > title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  const hide = () => {
    if (shown) shown.classList.remove("on");
    shown = null;
    tip.hidden = true;
  };
  const show = (mark, x, y) => {
    if (shown !== mark) {
      hide();
      shown = mark;
      mark.classList.add("on");
      tip.textContent = say(mark);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 16 + box.height > innerHeight ? Math.max(4, y - box.height - 8) : y + 16) + "px";
  };
  const at = (mark) => {
    const box = mark.getBoundingClientRect();
    show(mark, box.left + box.width / 2, box.top + box.height / 2);
  };
  const zoom = (chart, frame) => {
    const left = frame ? +frame.dataset.x : 0, wide = frame ? +frame.dataset.w : 100;
    for (const mark of chart.querySelectorAll(".m")) {
      const x = (+mark.dataset.x - left) / wide * 100, w = +mark.dataset.w / wide * 100;
      const from = Math.max(0, x), to = Math.min(100, x + w);
      mark.style.display = to - from <= 0.01 ? "none" : "";
      mark.setAttribute("x", from + "%");
      mark.setAttribute("width", Math.max(0, to - from) + "%");
    }
    chart.dataset.zoomed = frame ? "1" : "";
  };
  for (const chart of document.querySelectorAll("svg.chart")) {
    const marks = [...chart.querySelectorAll(".m")];
    const flame = chart.classList.contains("flame");
    chart.addEventListener("pointermove", (event) => {
      const mark = event.target.closest(".m");
      if (mark) show(mark, event.clientX, event.clientY); else hide();
    });
    chart.addEventListener("pointerleave", hide);
    chart.addEventListener("focusout", hide);
    if (flame) chart.addEventListener("click", (event) => zoom(chart, event.target.closest(".m")));
    chart.addEventListener("keydown", (event) => {
      const visible = marks.filter((mark) => mark.style.display !== "none");
      if (visible.length === 0) return;
      const now = visible.indexOf(shown);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) at(visible[now < 0 ? (step > 0 ? 0 : visible.length - 1) : (now + step + visible.length) % visible.length]);
      else if (event.key === "Home") at(visible[0]);
      else if (event.key === "End") at(visible[visible.length - 1]);
      else if (event.key === "Enter" && flame && shown) { const mark = shown; zoom(chart, mark); at(mark); }
      else if (event.key === "Escape") { if (flame && chart.dataset.zoomed) zoom(chart, null); hide(); }
      else return;
      event.preventDefault();
    });
  }
  addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details")) d.open = true; });
})();
