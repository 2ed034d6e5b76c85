// What the server said besides the result of the last command: warnings and notes, above the lower edge of the window.

import { commandNotices } from "../api_client";
import { Button } from "./button";
import { BacktickText, WarningNotice } from "./notice";

export function CommandNoticeList() {
  const notices = commandNotices.value;
  return (
    <div class="command-notices" role="status">
      {notices.length > 0 && (
        <WarningNotice>
          <ul class="list">
            {notices.map((notice, index) => (
              <li key={index}>
                <BacktickText text={notice} />
              </li>
            ))}
          </ul>
          <Button kind="quiet" class="small-button" onClick={() => (commandNotices.value = [])}>
            Close
          </Button>
        </WarningNotice>
      )}
    </div>
  );
}
