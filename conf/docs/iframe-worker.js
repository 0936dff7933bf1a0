// SPDX-License-Identifier: Apache-2.0
//
// Search in pages that are opened as files. A browser runs no Worker there, so the worker's script runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
      inside.importScripts = (...urls) => urls.reduce((last, next) => last.then(() => load(inside, next)), Promise.resolve());
      load(inside, url).then(() => {
        this.waiting.forEach(data => deliver(inside, data));
        this.waiting = null;
      });
      this.inside = inside;
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else deliver(this.inside, data);
    }

    terminate() { this.inside.frameElement.remove(); }
  };

  const deliver = (inside, data) => inside.dispatchEvent(new inside.MessageEvent("message", {data}));

  const load = (inside, url) => new Promise((loaded, failed) => {
    const script = inside.document.createElement("script");
    script.src = new URL(url, location);
    script.onload = loaded;
    script.onerror = failed;
    inside.document.body.append(script);
  });
}
