// Whoever points at a mark of a picture reads its title at once, beside the pointer.
for (const figure of document.querySelectorAll("figure.picture")) {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);
  for (const title of figure.querySelectorAll("title")) {
    title.parentNode.dataset.words = title.textContent;
    title.remove(); // else the browser shows the same once more, a second later
  }
  figure.addEventListener("pointermove", (event) => {
    const mark = event.target.closest("[data-words]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.words;
    const box = figure.getBoundingClientRect();
    tip.style.left = Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth) + "px";
    tip.style.top = event.clientY - box.top + 16 + "px";
  });
  figure.addEventListener("pointerleave", () => { tip.hidden = true; });
}
