/* Written by transformer_values.py with torch 2.11.0+cu130, f64. */
#define SIZES "2,16,2,8,11,2"
enum { STEPS = 3, PROJECTION = 5000 };

static const double losses[STEPS] = {2.4088229652183144, 2.4322171601490394, 2.3982173841276921};

/* Of each parameter's gradient in the first step. */
static const struct {
    const char *path;
    double projection;
} gradients_of_torch[] = {
    {"token", 0.70495563993233057},
    {"place", -0.81699216420589194},
    {"blocks.layers.1.norm1.gain", 0.00037615585712400077},
    {"blocks.layers.1.norm1.bias", -0.00076174345154574703},
    {"blocks.layers.1.qkv.weight", 0.071101681378501438},
    {"blocks.layers.1.qkv.bias", -0.024323007058063128},
    {"blocks.layers.1.out.weight", 0.11619919484384918},
    {"blocks.layers.1.out.bias", -0.28984782147411564},
    {"blocks.layers.1.norm2.gain", 0.00064760301295413675},
    {"blocks.layers.1.norm2.bias", 0.001112400458652065},
    {"blocks.layers.1.up.weight", -0.09585661986373803},
    {"blocks.layers.1.up.bias", -0.0079199921598580685},
    {"blocks.layers.1.down.weight", -0.031238375713881356},
    {"blocks.layers.1.down.bias", 0.48617088135945807},
    {"blocks.layers.2.norm1.gain", 0.0011590026726390997},
    {"blocks.layers.2.norm1.bias", 0.00058044425359613525},
    {"blocks.layers.2.qkv.weight", -0.064072973780907774},
    {"blocks.layers.2.qkv.bias", 0.016427400141282571},
    {"blocks.layers.2.out.weight", -0.0171087309932485},
    {"blocks.layers.2.out.bias", 0.042615654645827117},
    {"blocks.layers.2.norm2.gain", -6.675162467093134e-05},
    {"blocks.layers.2.norm2.bias", 0.00067777739388121948},
    {"blocks.layers.2.up.weight", -0.068077147470498547},
    {"blocks.layers.2.up.bias", 0.0047938532954554924},
    {"blocks.layers.2.down.weight", -0.13588060538512917},
    {"blocks.layers.2.down.bias", -0.11856503383081876},
    {"norm.gain", 0.0044432143942835442},
    {"norm.bias", 0.00091858900891472186},
};
