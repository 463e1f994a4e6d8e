// The search runs in a worker, and a browser starts none for pages of a folder (file://). There, a hidden frame is the worker:
// what is posted to it reaches its listeners, what it posts comes back, and importScripts adds scripts one after the other.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inner = this.frame.contentWindow;
    this.ready = new Promise((resolve) => { inner.loaded = resolve; });
    inner.document.open();
    inner.document.write(`<!doctype html><html><body><script>
      self.postMessage = (data) => parent.postMessage(data, "*");
      self.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve) => {
        const script = document.createElement("script");
        script.src = url;
        script.onload = resolve;
        document.body.append(script);
      })), Promise.resolve());
    </script><script src="${url}" onload="loaded()"></script></body></html>`);
    inner.document.close();
    addEventListener("message", (event) => {
      if (event.source !== inner) return;
      const message = new MessageEvent("message", { data: event.data });
      this.dispatchEvent(message);
      this.onmessage?.(message);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
  }

  terminate() {
    this.frame.remove();
  }
}
if (location.protocol === "file:") window.Worker = FrameWorker;
