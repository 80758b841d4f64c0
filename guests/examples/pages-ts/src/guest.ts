// The export of the component. The other files run in node too.
import { exported } from '@innkeeper/guest/component';

import { pages } from './pages.js';

export const reconciler = exported(pages);
