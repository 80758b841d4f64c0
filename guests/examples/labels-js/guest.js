// The imports and exports of the component. The other files run in node too.
import { write } from 'innkeeper:guest/log@0.1.0';
import { exported } from './innkeeper.js';
import * as labels from './labels.js';

export const reconciler = exported(labels, write);
