//! Which autonomous systems are whose, where the configuration does not say otherwise.
//!
//! China's three carriers have numbers of their own, 1 to 3, and their networks abroad are not in
//! the table: those are reached well over BGP. In ten other countries the large carriers share one
//! number a country, 4 to 13, since each country's carriers exchange traffic at home. Numbers 14
//! and 15 are free.
//!
//! Source: the registries' names of autonomous systems, as RouteViews and the five regional
//! registries had them in June 2026. Of China's three, every system that announces 8,192 addresses
//! or more is listed, and some smaller ones; that is over 99.9 % of their addresses.

/// Carriers as they are without configuration, by number: name and systems.
pub(super) const DEFAULTS: [(&str, &[u32]); 16] = [
    ("bgp", &[]),
    ("telecom", TELECOM),
    ("unicom", UNICOM),
    ("mobile", MOBILE),
    ("us", UNITED_STATES),
    ("jp", JAPAN),
    ("kr", KOREA),
    ("de", GERMANY),
    ("gb", BRITAIN),
    ("fr", FRANCE),
    ("in", INDIA),
    ("br", BRAZIL),
    ("vn", VIETNAM),
    ("id", INDONESIA),
    ("c14", &[]),
    ("c15", &[]),
];

/// China Telecom: ChinaNet (4134), CN2 (4809), Shanghai (4811, 4812), provinces and data centres.
const TELECOM: &[u32] = &[
    4134, 4809, 4811, 4812, 4813, 4816, 4835, 4847, 17633, 17638, 17799, 17897, 23650, 23724,
    38283, 58461, 58466, 58540, 58541, 58542, 58563, 58772, 59223, 59265, 131285, 131325, 132225,
    134238, 134425, 134756, 134760, 134761, 134762, 134763, 134764, 134765, 134766, 134768, 134769,
    134770, 134772, 134773, 134774, 135089, 136199, 136200, 137266, 137688, 137689, 137692, 137693,
    137694, 137695, 137697, 137699, 137702, 138169, 138950, 138982, 139018, 139201, 139203, 139220,
    139587, 140061, 140083, 140292, 140293, 140308, 140309, 140311, 140318, 140319, 140320, 140345,
    140485, 140486, 140527, 140553, 140636, 140638, 140647, 141679, 141739, 141771, 141998, 142404,
    146966, 147038, 148969, 148981, 149178, 149837, 150145, 151185, 151397, 151823,
];

/// China Unicom: China169 (4837), the former CNC (9929), Beijing (4808), Shanghai and Guangdong
/// (17621 to 17623, 17816), provinces.
const UNICOM: &[u32] = &[
    4808, 4837, 9929, 10206, 17621, 17622, 17623, 17789, 17816, 45083, 133118, 133119, 134542,
    134543, 135061, 136958, 136959, 137539, 138421, 139007, 140716, 140717, 140726, 140979, 152120,
];

/// China Mobile: CMNET (9808), the provinces (24400 to 24547, 56040 to 56048), and TieTong (9394,
/// 24138).
const MOBILE: &[u32] = &[
    9394, 9808, 24138, 24400, 24444, 24445, 24547, 38019, 56040, 56041, 56042, 56043, 56044, 56045,
    56046, 56047, 56048, 132510, 132525, 134810, 138407, 139080, 140105, 141425,
];

/// United States: Comcast, Verizon, AT&T, T-Mobile, Charter, Cox, Lumen, Frontier, Windstream,
/// Optimum.
const UNITED_STATES: &[u32] = &[
    209, 701, 5650, 6128, 6167, 7018, 7029, 7922, 10796, 11351, 11426, 11427, 12271, 20001, 20057,
    20115, 21928, 22394, 22773, 33363,
];

/// Japan: NTT, NTT Docomo, KDDI, SoftBank, JCOM, IIJ, BIGLOBE, So-net, OPTAGE.
const JAPAN: &[u32] = &[2497, 2514, 2516, 2518, 2527, 4713, 4721, 4725, 9605, 9824, 17511, 17676];

/// South Korea: KT, SK Broadband, SK Telecom, LG Uplus.
const KOREA: &[u32] = &[3786, 4766, 9318, 9644, 17853, 17858];

/// Germany: Deutsche Telekom, Vodafone, Telefónica, 1&1, NetCologne, Deutsche Glasfaser.
const GERMANY: &[u32] = &[3209, 3320, 6805, 8422, 8881, 29562, 31334, 60294];

/// United Kingdom: BT, Virgin Media, Sky, TalkTalk, Vodafone, O2, Three.
const BRITAIN: &[u32] = &[2856, 5089, 5378, 5607, 6871, 13285, 25135, 35228, 60339, 206067];

/// France: Orange, Free, SFR, Bouygues.
const FRANCE: &[u32] = &[3215, 5410, 12322, 15557, 21502, 51207];

/// India: Jio, Airtel, BSNL, MTNL, Vodafone Idea, Hathway, ACT, Tata.
const INDIA: &[u32] = &[
    4755, 9498, 9829, 17488, 17813, 18209, 24309, 24560, 38266, 45271, 45609, 45820, 55410, 55577,
    55836,
];

/// Brazil: Claro, Vivo, TIM, V.tal, Algar.
const BRAZIL: &[u32] =
    &[4230, 7738, 8167, 10429, 16735, 18881, 19182, 22085, 26599, 26615, 27699, 28573, 53006];

/// Vietnam: VNPT, Viettel, FPT, MobiFone, CMC, SCTV.
const VIETNAM: &[u32] = &[7552, 7643, 18403, 24086, 45543, 45899, 45903, 131429, 135905];

/// Indonesia: Telkom, Telkomsel, Indosat, XL, Linknet, Biznet.
const INDONESIA: &[u32] = &[4761, 7713, 17451, 17974, 23693, 23700, 24203, 45727, 139994];
